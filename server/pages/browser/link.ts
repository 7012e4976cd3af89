// Ids and tokens of the service; only they may be put into a path.
const USER_ID = /^[0-9a-f]{24}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** No spaces, so that a link cannot put a sentence on the page. */
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,253}$/;
const ANYTHING = /^.+$/;

/**
 * The parameters of the link that led here; undefined, with a message, if one is missing or damaged. They are removed
 * from the address at once, where others could read them. Until `forgetLink` the history entry holds them, invisibly,
 * so that the page can be reloaded.
 * @param parts pattern of each parameter, by its name
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

/** Deletes the parameters of a used link, which are void. */
const forgetLink = (): void => history.replaceState(null, "", location.pathname);
