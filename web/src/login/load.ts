import { LoginPage } from "./LoginPage";
import { bringLogin } from "./messages";

/** The login, with its messages. */
export async function load() {
  await bringLogin();
  return { default: LoginPage };
}
