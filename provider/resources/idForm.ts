/**
 * Splits an id at its slashes.
 * @throws Error naming the form that is expected
 */
export function splitId<const N extends readonly string[]>(
  id: string,
  resource: string,
  ...names: N
): { [K in N[number]]: string } {
  const parts = id.split("/");
  if (parts.length !== names.length || parts.some((part) => part === "")) {
    throw new Error(`${resource} id "${id}": must be ${names.join("/")}`);
  }
  return Object.fromEntries(names.map((name, index) => [name, parts[index]])) as { [K in N[number]]: string };
}
