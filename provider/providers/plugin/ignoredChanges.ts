type Values = Readonly<Record<string, unknown>>;

/**
 * The inputs with what the state has at the places whose changes are to be ignored. The engine puts the program's last
 * values there, which after a change by hand are not what is there.
 * @param paths as the engine writes them: `filter.tags`, `keepers["a key"]`; `*` stands for all members
 */
export function keepIgnored(
  inputs: Values,
  state: Values,
  paths: readonly string[],
): Record<string, unknown> {
  const steps = paths.map((path) => [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|[^.[\]]+/g)].map(keyOf));
  return steps.reduce<Record<string, unknown>>((kept, keys) => withState(kept, state, keys), { ...inputs });
}

const keyOf = ([whole, quoted]: RegExpMatchArray) => quoted?.replaceAll('\\"', '"') ?? whole;

function withState(
  inputs: Values,
  state: Values,
  [key = "*", ...inside]: readonly string[],
): Record<string, unknown> {
  if (key === "*") return { ...state };
  const { [key]: before } = state;
  const { [key]: given, ...rest } = inputs;
  if (inside.length > 0 && isObject(given) && isObject(before)) {
    return { ...rest, [key]: withState(given, before, inside) };
  }
  return before === undefined ? rest : { ...rest, [key]: before };
}

const isObject = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);
