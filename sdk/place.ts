/** Scheme, host and port of an address, the port also where it is the scheme's own. */
export function placeOf(address: string): string {
  const { protocol, hostname, port } = new URL(address);
  return `${protocol}//${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

/** The same place by TLS, or without; where the port is the scheme's own, by that of the other scheme. */
export function otherScheme(address: string): string {
  const { protocol, host } = new URL(address);
  return `${protocol === "https:" ? "http:" : "https:"}//${host}`;
}
