// Messages of the login, and of passwords. They come with what shows them.

export const login = {
  "login.title": "Log in",
  "login.name": "Name",
  "login.password": "Password",
  "login.show": "Show",
  "login.submit": "Log in",
  "login.forgot": "Forgot your password, or no account yet? An administrator can make you a link.",
  "login.setup": "This server has no users yet. Its log has the link by which the first administrator begins.",
  "login.with": "Continue with {provider}",
  "login.or": "or with a password",
  "login.failed": "The name or the password is wrong.",
  "login.wait":
    "{n, plural, one {Too many wrong passwords. Try again in # second.} other {Too many wrong passwords. Try again in # seconds.}}",
  "login.waitLong":
    "{n, plural, one {Too many wrong passwords. Try again in # minute.} other {Too many wrong passwords. Try again in # minutes.}}",
  "login.error": "The login did not succeed. Try again, or ask an administrator.",
  "login.error.issuer_unreachable": "The login provider does not answer. Try again, or ask an administrator.",
  "login.error.issuer_answer_refused":
    "What the login provider answered was refused. Log in again, or ask an administrator.",
  "login.error.login_denied": "The login provider did not let you in, or you left its page. Log in again.",
  "login.error.login_expired": "This login took too long, or was begun in another window. Log in again.",
  "login.error.account_pending": "Your account waits for an administrator to let you in.",
  "login.error.account_disabled": "Your account is switched off. Ask an administrator.",
  "login.error.signup_refused": "You have no account on this server. Ask an administrator for one.",
  "login.error.domain_refused":
    "Your e-mail address is not of a domain that may log in here, or your provider did not verify it.",
  "login.link.setup": "Set up Longthread",
  "login.link.invitation": "Welcome, {name}",
  "login.link.reset": "A new password for {name}",
  "login.linkAbout.setup":
    "You become the first administrator. Conversations and settings that this server has already become yours.",
  "login.linkAbout.invitation": "Choose a password, and you are in. The link works this once.",
  "login.linkAbout.reset": "Choose a new password. You are logged out everywhere else.",
  "login.linkSubmit.setup": "Begin",
  "login.linkSubmit.invitation": "Begin",
  "login.linkSubmit.reset": "Set the password",
  "login.linkGone": "This link does not work any more",
  "login.linkGoneHelp": "It was used, has expired, or is incomplete. Ask an administrator for a new one.",
  "login.toLogin": "Go to the login",
  "login.newPassword": "New password",
  "login.passwordHint": "At least {n} characters. A few words together are easy to remember.",
  "login.tooShort": "Too short: a password has at least {n} characters.",
  "login.isName": "This is your name. Choose another password.",
  "login.nameHint": "You log in with it.",
  "login.nameMissing": "Enter a name.",
};
