import { BlockList, isIP } from "node:net";
import type { Environment } from "./environment.ts";
import { ConfigurationError } from "./errors.ts";
import { isLoopbackHost } from "./loopback.ts";
import { Secret } from "./secret.ts";

/** An HTTP proxy. Printing the object does not print the user name and the password. */
export class HttpProxy {
  /** Address of the proxy without user name and password. */
  readonly address: string;
  /** Name of the setting that contains the proxy, for errors. */
  readonly setting: string;
  /** Value of the header `Proxy-Authorization`; undefined for a proxy without a user name. */
  readonly authorization: Secret | undefined;

  /**
   * Creates a proxy from its URL.
   * @param text the URL of the proxy: `http://[user:password@]host[:port]`, the same with `https://`, or `host:port`.
   *   Percent-encode special characters in the user name and password
   * @throws ConfigurationError if the string has a different form. The error does not contain the string, which may
   *   contain a password
   */
  constructor(text: string, setting = "proxy") {
    const url = URL.parse(/^[^/:@]+:\d+$/.test(text) ? `http://${text}` : text);
    const account = url ? accountOf(url) : undefined;
    const isHttp = url && /^https?:$/.test(url.protocol) && url.pathname === "/" && !/[?#]/.test(url.href);
    if (!isHttp || account === undefined) {
      throw new ConfigurationError("is not the URL of an HTTP proxy", {
        field: [setting],
        remedy: "use the form http://host:port or http://user:password@host:port",
      });
    }
    this.address = url.origin;
    this.setting = setting;
    this.authorization =
      account === ":" ? undefined : new Secret(`Basic ${Buffer.from(account).toString("base64")}`);
  }

  /** Headers of requests to the proxy. */
  get headers(): Record<string, string> {
    return this.authorization ? { "proxy-authorization": this.authorization.reveal() } : {};
  }
}

/**
 * Returns the user name and password of a URL, separated by a colon. Returns undefined if their percent-encoding is
 * invalid.
 */
function accountOf({ username, password }: URL): string | undefined {
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch {
    return undefined;
  }
}

/** Returns the proxy for requests to an address. Returns undefined if the requests are sent directly. */
export type ProxyFor = (target: URL) => HttpProxy | undefined;

/** The environment variables of {@link proxiesFromEnvironment}. The lower-case names have the same meaning. */
const VARIABLES = ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];

/** The names of all environment variables that {@link proxiesFromEnvironment} reads. */
export const PROXY_VARIABLES: readonly string[] = VARIABLES.flatMap((name) => [name, name.toLowerCase()]);

/**
 * Returns a function that selects the proxy for an address from environment variables, by the rules of curl:
 * - HTTPS_PROXY is the proxy for `https` URLs, and HTTP_PROXY is the proxy for `http` URLs.
 * - NO_PROXY lists hosts that need no proxy, separated by commas or white space. An entry is a host name (which also
 *   matches the subdomains), `*.example.org` (which matches only the subdomains), an IP address, a network such as
 *   `10.0.0.0/8`, or `*` (which matches all hosts). An entry can end in a port, such as `example.org:8443`.
 * - Lower-case names have precedence. An empty variable is treated as absent. Requests to `localhost`, `127.0.0.0/8`
 *   and `[::1]` never use a proxy.
 * @param env the environment variables; default: those of this process
 * @returns a function that throws a ConfigurationError if the variable of the proxy is invalid
 */
export function proxiesFromEnvironment(env: Environment = process.env): ProxyFor {
  const given = new Map(
    VARIABLES.map((name) => {
      const variable = [name.toLowerCase(), name].find((one) => env[one]);
      return [name, variable === undefined ? undefined : { variable, value: env[variable] ?? "" }] as const;
    }),
  );
  return (target) => {
    // A proxy on another machine would connect to its own loopback addresses, not to those of this machine.
    if (isLoopbackHost(withoutDot(target.hostname))) return undefined;
    const proxy = given.get(/^(https|wss):$/.test(target.protocol) ? "HTTPS_PROXY" : "HTTP_PROXY");
    if (!proxy || isExcepted(target, given.get("NO_PROXY")?.value ?? "")) return undefined;
    return new HttpProxy(proxy.value, proxy.variable);
  };
}

/** Returns a host name without its trailing dot. Both forms refer to the same host. */
const withoutDot = (name: string): string => (name.endsWith(".") ? name.slice(0, -1) : name);

/** Returns true if a list in the format of NO_PROXY contains the host of a URL. */
function isExcepted({ hostname, port, protocol }: URL, list: string): boolean {
  const host = withoutDot(hostname.replaceAll(/[[\]]/g, ""));
  const ownPort = port || (/^(https|wss):$/.test(protocol) ? "443" : "80");
  return list.split(/[\s,]+/).some((entry) => {
    // An IPv6 address without brackets contains colons, so it cannot end in a port.
    const [, name = "", entryPort] = (isIP(entry) === 0 && /^(.*):(\d+)$/.exec(entry)) || [entry, entry];
    if (entryPort !== undefined && entryPort !== ownPort) return false;
    return matches(host, withoutDot(name.toLowerCase().replaceAll(/[[\]]/g, "")));
  });
}

/** Returns true if an entry of NO_PROXY, without its port, matches a host. */
function matches(host: string, entry: string): boolean {
  if (entry === "") return false;
  if (entry === "*") return true;
  if (isIP(host) !== 0) return isInNetwork(host, entry);
  if (entry.startsWith("*.")) return host.endsWith(entry.slice(1));
  const name = entry.startsWith(".") ? entry.slice(1) : entry;
  return host === name || host.endsWith(`.${name}`);
}

/** Returns true if an IP address equals the address of an entry, or is in the network of an entry. */
function isInNetwork(address: string, entry: string): boolean {
  const [network = "", prefix] = entry.split("/");
  const bits = { 0: undefined, 4: 32, 6: 128 }[isIP(network)];
  const length = prefix === undefined ? bits : Number(prefix || Number.NaN);
  if (bits === undefined || length === undefined || !(length >= 0 && length <= bits)) return false;
  const list = new BlockList();
  list.addSubnet(network, length, bits === 32 ? "ipv4" : "ipv6");
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}
