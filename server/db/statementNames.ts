/** Statements that a connection keeps ready; texts beyond them (lists of ids of any length) are parsed each time. */
const MAXIMUM = 300;

/**
 * Names under which PostgreSQL keeps statements ready, so that it parses and plans each once for a connection.
 * @returns a function from a statement to its name; undefined for one that is not worth keeping
 */
export function statementNames(): (query: { readonly sql: string }) => string {
  const names = new Map<string, string>();
  return ({ sql }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    // Without a name a statement is not kept.
    if (names.size >= MAXIMUM) return "";
    const name = `gatehouse_${names.size}`;
    names.set(sql, name);
    return name;
  };
}
