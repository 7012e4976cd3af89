// The service's ids and tokens; what is put into a path must be nothing else.
const USER_ID = /^[0-9a-f]{24}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** No spaces: what somebody writes into a link must not be able to say something on the page. */
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,253}$/;
const ANYTHING = /^.+$/;

/**
 * The parameters of the link that led here; undefined, and said to the person, when one is missing or damaged. They
 * are taken out of the address at once, where others could read them. Until `forgetLink` the entry of the history holds
 * them, which nobody sees, so that the page can be loaded again.
 * @param parts the form of each parameter, by its name
 */
function readLink<Name extends string>(
  parts: Readonly<Record<Name, RegExp>>,
): Readonly<Record<Name, string>> | undefined {
  const given: unknown =
    location.search === "" ? history.state : Object.fromEntries(new URLSearchParams(location.search));
  history.replaceState(given, "", location.pathname);
  const values = (given ?? {}) as Readonly<Record<Name, string>>;
  const names = Object.keys(parts) as Name[];
  const missing = names.filter((name) => !values[name]);
  const damaged = names.filter((name) => values[name] && !parts[name].test(values[name]));
  if (missing.length + damaged.length === 0) return values;
  say(
    "bad",
    "This address is not whole, or its link was used here before.",
    ...(missing.length > 0 ? [`Missing in it: ${missing.join(", ")}.`] : []),
    ...(damaged.length > 0 ? [`Damaged in it: ${damaged.join(", ")}.`] : []),
    "Open the link once more from where you got it, or copy all of it into the address.",
  );
  return undefined;
}

/** To be called once the link is used: it is worth nothing any more, and nothing of it stays. */
const forgetLink = (): void => history.replaceState(null, "", location.pathname);
