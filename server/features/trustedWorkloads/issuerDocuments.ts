import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import type { HttpProxy } from "@gatehouse-access/sdk/proxies";
import { addressMatcher, isPublic } from "../../addresses.ts";

/**
 * Maximum duration of one request to an issuer, from the DNS lookup to the end of the response body, in milliseconds.
 */
const TIMEOUT = 5000;

/** Looks up all addresses of a host name. */
export type LookupAll = (hostname: string) => Promise<readonly LookupAddress[]>;

const resolver = new Resolver({ timeout: TIMEOUT / 2, tries: 1 });

/**
 * Looks up the addresses of a host name in DNS. Node's default lookup would occupy a thread of the pool that also signs
 * tokens, so slow name servers of a tenant could delay all requests. This function does not read the hosts file.
 */
const lookupInDns: LookupAll = async (hostname) => {
  const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const found = [
    ...(ipv4.status === "fulfilled" ? ipv4.value.map((address) => ({ address, family: 4 })) : []),
    ...(ipv6.status === "fulfilled" ? ipv6.value.map((address) => ({ address, family: 6 })) : []),
  ];
  if (found.length === 0 && ipv4.status === "rejected") throw ipv4.reason;
  return found;
};

/** The error for an issuer document that cannot be read. The message contains no text from the document. */
export class DocumentError extends Error {
  override readonly name = "DocumentError";
}

/** A function that reads a JSON document over HTTPS. The signal cancels the read if it is aborted. */
export type ReadDocument = (address: string, maxBytes: number, signal: AbortSignal) => Promise<unknown>;

/** Settings of a {@link documentReader}. */
interface ReaderOptions {
  /** Networks of private addresses that issuers may use. */
  readonly networks: readonly string[];
  /** The proxy for all requests. Undefined to connect directly. */
  readonly proxy: HttpProxy | undefined;
  readonly lookupAll?: LookupAll | undefined;
}

/**
 * Returns a function that reads JSON documents of issuers. Tenants choose the addresses of issuers, so the function
 * checks each IP address when it connects. The address must be public or in one of the networks. A proxy resolves host
 * names itself. Therefore, with a proxy, the function checks only URLs that contain an IP address. The function follows
 * no redirects, limits the duration and the size, and ignores the proxy settings in the environment.
 */
export function documentReader({ networks, proxy, lookupAll = lookupInDns }: ReaderOptions): ReadDocument {
  const isInNetworks = addressMatcher(networks);
  const isAllowed = (address: string) => isPublic(address) || isInNetworks(address);
  const refusal = () =>
    new DocumentError(
      "the host has an address that is neither public nor in GATEHOUSE_WORKLOAD_ISSUER_NETWORKS",
    );

  // Node connects to the addresses that this function returns, and does not look up the name again.
  const lookup: LookupFunction = (hostname, options, done) => {
    lookupAll(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (first === undefined || !addresses.every(({ address }) => isAllowed(address))) done(refusal(), []);
        else if (options.all) done(null, [...addresses]);
        else done(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => done(error, []),
    );
  };

  return async (address, maxBytes, signal) => {
    const url = URL.parse(address);
    if (url?.protocol !== "https:" || url.username !== "" || url.password !== "") {
      throw new DocumentError("the address must be an https URL without a user name");
    }
    // Node does not call `lookup` for an IP address, so the address is checked here.
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isAllowed(host)) throw refusal();
    const ended = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]);
    // Imported here, because most services never read a document.
    const [{ Agent, request }, { createDispatcher }] = await Promise.all([
      import("undici"),
      import("@gatehouse-access/sdk/dispatcher"),
    ]);
    const connections = proxy
      ? createDispatcher(url, { proxy, connectTimeout: TIMEOUT })
      : new Agent({ connect: { lookup, timeout: TIMEOUT } });
    try {
      const headers = { accept: "application/json" };
      const response = await request(url, { headers, dispatcher: connections, signal: ended });
      if (response.statusCode !== 200) {
        response.body.on("error", () => {}).destroy();
        throw new DocumentError(`the response has status ${response.statusCode}`);
      }
      return parseDocument(await readBody(response.body, maxBytes));
    } finally {
      // If a request ends early, its connection is still open.
      await connections.destroy();
    }
  };
}

async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw new DocumentError(`the document is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseDocument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message is discarded, because it contains part of the document.
    throw new DocumentError("the document is not JSON");
  }
}
