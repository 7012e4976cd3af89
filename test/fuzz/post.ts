/**
 * Sends JSON and gives the JSON of the answer.
 * @throws Error with the service's message, when it does not answer 2xx
 */
export async function post<T>(
  url: string,
  path: string,
  body: unknown,
  token?: string,
  more: Readonly<Record<string, string>> = {},
): Promise<T> {
  const credential = token && { authorization: `Bearer ${token}` };
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...credential, ...more },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}
