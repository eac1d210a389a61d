interface Pressed {
  key: string;
  keyCode: number;
  shiftKey: boolean;
  nativeEvent: { isComposing: boolean };
}

/** Whether an input method composes: its Enter chooses a word. Safari tells it by the key's code alone. */
export const composes = (event: Pressed): boolean => event.nativeEvent.isComposing || event.keyCode === 229;

/** Enter that sends what is typed. */
export const sends = (event: Pressed): boolean => event.key === "Enter" && !event.shiftKey && !composes(event);
