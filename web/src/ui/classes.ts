/** The names of classes that are on. */
export const classes = (...names: (string | false | null | undefined)[]) => names.filter(Boolean).join(" ");
