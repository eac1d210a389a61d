export { Catalog } from "./Catalog";
export { Terms } from "./Terms";
