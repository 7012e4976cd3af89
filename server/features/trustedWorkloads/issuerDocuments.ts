import { type LookupAddress, type LookupAllOptions, lookup as lookupInDns } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import type { buildConnector } from "undici";
import { addressMatcher, isPublic } from "../../addresses.ts";

/** Maximum time in milliseconds for one request to an issuer, from the look-up of its name to the end of the body. */
const TIMEOUT = 5000;

/** Looks up all addresses of a host name, like `dns.lookup`. */
export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** A document of an issuer cannot be read. The message contains no text of the document. */
export class DocumentError extends Error {
  override readonly name = "DocumentError";
}

/** A function that reads a JSON document over HTTPS. */
export type ReadDocument = (address: string, maxBytes: number) => Promise<unknown>;

/**
 * Returns a function that reads JSON documents of issuers. Tenants choose the addresses of issuers, so the function
 * checks each IP address when it connects: the address must be public or lie in one of the networks. It follows no
 * redirects, and it limits the time and the size.
 * @param networks networks of private addresses that issuers may have
 */
export function documentReader(
  networks: readonly string[],
  lookupAll: LookupAll = lookupInDns,
): ReadDocument {
  const isInNetworks = addressMatcher(networks);
  const isAllowed = (address: string) => isPublic(address) || isInNetworks(address);
  const refusal = () =>
    new DocumentError(
      "the host has an address that is neither public nor in GATEHOUSE_WORKLOAD_ISSUER_NETWORKS",
    );

  // Node connects to the addresses of this answer and does not look up the name again.
  const lookup: LookupFunction = (hostname, options, done) => {
    lookupAll(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null) done(error, []);
      else if (first === undefined || !addresses.every(({ address }) => isAllowed(address)))
        done(refusal(), []);
      else if (options.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };

  return async (address, maxBytes) => {
    const { Agent, buildConnector: connectorOf, request } = await import("undici");
    const url = URL.parse(address);
    if (url?.protocol !== "https:" || url.username !== "" || url.password !== "") {
      throw new DocumentError("the address is not an https URL without a user");
    }
    const connector = connectorOf({ lookup, timeout: TIMEOUT, allowH2: false });
    const connect: buildConnector.connector = (options, done) => {
      // Node does not look up an IP address, so it is checked here.
      const host = options.hostname.replace(/^\[|\]$/g, "");
      if (isIP(host) !== 0 && !isAllowed(host)) done(refusal(), null);
      else connector(options, done);
    };
    const dispatcher = new Agent({ connect });
    try {
      const headers = { accept: "application/json" };
      const response = await request(url, { dispatcher, headers, signal: AbortSignal.timeout(TIMEOUT) });
      if (response.statusCode !== 200)
        throw new DocumentError(`the response has status ${response.statusCode}`);
      return parseDocument(await readBody(response.body, maxBytes));
    } finally {
      // A request that ended early leaves an open connection.
      await dispatcher.destroy();
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
    // The parser's message contains a part of the document.
    throw new DocumentError("the document is not JSON");
  }
}
