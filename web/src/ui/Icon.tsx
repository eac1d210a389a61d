// The page's pictures: 20 units, one line, the colour of the text around.

const PATHS = {
  plus: "M10 4v12M4 10h12",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  close: "M5 5l10 10M15 5L5 15",
  more: "M4.5 10h.01M10 10h.01M15.5 10h.01",
  search: "M9 15A6 6 0 109 3a6 6 0 000 12zM17 17l-3.8-3.8",
  settings: "M3 6h7M14 6h3M12 4v4M3 14h3M10 14h7M8 12v4",
  panel: "M3 4h14v12H3zM12.5 4v12",
  edit: "M4 16l.8-3.2L13 4.6l2.4 2.4-8.2 8.2z",
  trash: "M4 6h12M8 6V4h4v2M5.5 6l.7 10h7.6l.7-10",
  tag: "M3.5 10.5v-7h7l6 6-7 7zM7 7h.01",
  download: "M10 3v9M6 8.5l4 4 4-4M4 16.5h12",
  copy: "M7 7h9v9H7zM4 13V4h9",
  again: "M15.5 8A6 6 0 105 13.3M15.5 3.5V8H11",
  stop: "M5 5h10v10H5z",
  up: "M10 16V4M5 9l5-5 5 5",
  down: "M10 4v12M5 11l5 5 5-5",
  left: "M12 5l-5 5 5 5",
  right: "M8 5l5 5-5 5",
  open: "M5 8l5 5 5-5",
  check: "M4 10.5l4 4 8-9",
  pin: "M7 3h6l-1 5.5 2.5 3h-9l2.5-3zM10 11.5V17",
  archive: "M3 4h14v3.5H3zM4.5 7.5V16h11V7.5M8 11h4",
  attach: "M15.5 9.5l-6 6a3.5 3.5 0 01-5-5l6.5-6.5a2.3 2.3 0 013.3 3.3L8 13.6",
  code: "M7 6l-4 4 4 4M13 6l4 4-4 4",
  share: "M10 12V3M6.5 6L10 2.7 13.5 6M4.5 10v6.5h11V10",
  board: "M3 3h6v6H3zM11 3h6v6h-6zM3 11h6v6H3zM11 11h6v6h-6z",
  folder: "M3 5h5l2 2h7v9H3z",
  data: "M4 5.5c0-3 12-3 12 0v9c0 3-12 3-12 0zM4 5.5c0 3 12 3 12 0M4 10c0 3 12 3 12 0",
  person: "M10 10a3.2 3.2 0 100-6.4A3.2 3.2 0 0010 10zM4 16.5c.6-5 11.400-5 12 0",
  leave: "M8 4H4v12h4M8.5 10H17M13.5 6.5L17 10l-3.5 3.5",
  model: "M10 3v4M10 13v4M3 10h4M13 10h4M8 8l4 4M12 8l-4 4",
  warn: "M10 3l7.5 13h-15zM10 8v4M10 14.2h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill={name === "stop" ? "currentColor" : "none"}
      stroke="currentColor"
      strokeWidth={name === "more" ? 2.4 : 1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
