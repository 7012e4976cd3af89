import type { Agent, ClientRequest } from "node:http";
import type { Socket } from "node:net";
import { type HttpProxy, ProxyError } from "@gatehouse-access/sdk";
import { HttpsProxyAgent } from "https-proxy-agent";

type ConnectOptions = Parameters<HttpsProxyAgent<string>["connect"]>[1];

/** An HTTP agent that connects WebSockets to the service through a proxy. The proxy opens a tunnel to the service. */
class ProxyAgent extends HttpsProxyAgent<string> {
  readonly #proxy: HttpProxy;
  readonly #target: string;

  constructor(proxy: HttpProxy, target: string) {
    // The address contains no password, because the library would print the password in its debug output.
    super(proxy.address, { headers: proxy.headers });
    this.#proxy = proxy;
    this.#target = target;
  }

  override async connect(request: ClientRequest, options: ConnectOptions): Promise<Socket> {
    let status = 200;
    request.once("proxyConnect", ({ statusCode }: { readonly statusCode: number }) => {
      status = statusCode;
    });
    const socket = await super.connect(request, options).catch((error: Error) => {
      throw new ProxyError(this.#proxy, this.#target, error);
    });
    if (status === 200) return socket;
    // Without this check, the library would return the proxy's response as if it came from the service. If that
    // response had a status such as 401, the agent would discard its token.
    socket.destroy();
    throw new ProxyError(this.#proxy, this.#target, status);
  }
}

/**
 * Returns an HTTP agent that connects WebSockets to the service through a proxy. If the proxy does not open a tunnel,
 * the WebSocket fails with a {@link ProxyError}.
 * @param target the URL of the service
 */
export const proxyAgent = (proxy: HttpProxy, target: string): Agent => new ProxyAgent(proxy, target);
