/** The id of the field that files are chosen with. */
export const FIELD = "files";

/** Opens the browser's picker: files that are chosen are offered. */
export const pickFiles = () => document.getElementById(FIELD)?.click();
