import { connect, type Socket } from "node:net";
import type { Connection, ServerChannel } from "ssh2";

/** Lets a client connect to other addresses through this machine while it is connected. */
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

/** Joins two connections. The end of one direction leaves the other direction open. */
function join(near: ServerChannel, far: Socket): void {
  near.pipe(far);
  far.pipe(near, { end: false });
  // Sent after the previous data. Ending the channel's stream would close both directions.
  far.on("end", () => near.write("", () => near.eof()));
  far.on("close", () => near.end());
  // A close follows every error.
  far.on("error", () => {});
  near.on("error", () => far.destroy());
  near.on("close", () => far.destroy());
}
