import { connect, type Socket } from "node:net";
import type { Connection, ServerChannel } from "ssh2";

/**
 * Allows a client to connect to other addresses through this machine. These connections close when the client
 * disconnects.
 */
export function allowForwarding(client: Connection): void {
  const open = new Set<Socket>();
  client.on("close", () => {
    for (const far of open) far.destroy();
  });
  client.on("tcpip", (accept, reject, { destIP, destPort }) => {
    const far = connect({ host: destIP, port: destPort, allowHalfOpen: true });
    open.add(far);
    far.on("close", () => open.delete(far));
    const refuse = () => reject();
    far.once("error", refuse);
    far.once("connect", () => {
      far.off("error", refuse);
      const near = accept();
      if (near) join(near, far);
      else far.destroy();
    });
  });
}

/** Forwards data between two connections. After EOF in one direction, the other direction stays open. */
function join(near: ServerChannel, far: Socket): void {
  near.pipe(far);
  far.pipe(near, { end: false });
  // Sends EOF to the client after all previous data. Ending the channel's stream would close both directions.
  far.on("end", () => near.write("", () => near.eof()));
  far.on("close", () => near.end());
  // This handler does nothing: Node.js emits "close" after every "error", and the "close" handler ends the channel.
  far.on("error", () => {});
  near.on("error", () => far.destroy());
  near.on("close", () => far.destroy());
}
