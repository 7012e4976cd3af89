/** Returns true for the host of a URL that only this machine can reach: `localhost`, `127.0.0.0/8` or `[::1]`. */
export const isLoopbackHost = (host: string): boolean =>
  host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
