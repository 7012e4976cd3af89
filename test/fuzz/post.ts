/**
 * Sends JSON and gives the JSON of the answer.
 * @throws Error with the service's message, when it does not answer 2xx
 */
export async function post<T>(url: string, path: string, body: unknown, token?: string): Promise<T> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}
