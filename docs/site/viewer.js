// Shows openapi.json, light or dark as the site is. It only describes: no request is sent from here.
const chosen = Object.keys(localStorage).find((key) => key.endsWith("__palette"))
const scheme = chosen && JSON.parse(localStorage.getItem(chosen)).color?.scheme
const dark = scheme ? scheme === "slate" : matchMedia("(prefers-color-scheme: dark)").matches
document.documentElement.classList.toggle("dark-mode", dark)

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#viewer",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  defaultModelRendering: "model", // an example would be made of patterns
  filter: true,
  supportedSubmitMethods: [],
  validatorUrl: null,
})
