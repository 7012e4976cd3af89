// Formats of the service's ids and tokens. The page inserts only values in these formats into a path.
const USER_ID = /^[0-9a-f]{24}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/**
 * Pattern of an e-mail address. Spaces are not allowed, so that an attacker's link cannot show a sentence on the page.
 */
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,253}$/;
const ANYTHING = /^.+$/;

/**
 * Returns the parameters in the address of the page. If the page was reloaded, returns the parameters in the history
 * entry. Immediately removes the parameters from the address bar, because other people could read them there.
 */
function takeParameters(): Readonly<Record<string, string>> {
  const given: unknown =
    location.search === "" ? history.state : Object.fromEntries(new URLSearchParams(location.search));
  history.replaceState(given, "", location.pathname);
  return (given ?? {}) as Readonly<Record<string, string>>;
}

/**
 * Returns the parameters of the link that opened the page. If a parameter is missing or damaged, shows a message and
 * returns undefined. The history entry keeps the parameters until `forgetLink` is called, so that the user can reload
 * the page.
 * @param parts pattern of each parameter, by name
 */
function readLink<Name extends string>(
  parts: Readonly<Record<Name, RegExp>>,
): Readonly<Record<Name, string>> | undefined {
  const values = takeParameters() as Readonly<Record<Name, string>>;
  const names = Object.keys(parts) as Name[];
  const missing = names.filter((name) => !values[name]);
  const damaged = names.filter((name) => values[name] && !parts[name].test(values[name]));
  if (missing.length + damaged.length === 0) return values;
  showMessage(
    "bad",
    "This link is incomplete or has already been used.",
    ...(missing.length > 0 ? [`Missing: ${missing.join(", ")}.`] : []),
    ...(damaged.length > 0 ? [`Damaged: ${damaged.join(", ")}.`] : []),
    "Open the original link again, or copy the whole link into the address bar.",
  );
  return undefined;
}

/** Deletes the parameters of a used link, because they are no longer valid. */
const forgetLink = (): void => history.replaceState(null, "", location.pathname);
