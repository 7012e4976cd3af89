/** A text without the secrets in it, also as JSON writes them. @param secrets the longest first */
export function masked(text: string, secrets: readonly string[]): string {
  const written = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]);
  return written.reduce((shown, secret) => shown.replaceAll(secret, "[secret]"), text);
}
