// Ends a child process of the engine when the parent process exits. Every child process loads this module first. The
// parent process holds the other end of file descriptor 3. This end closes when the parent process exits for any
// reason.
import { Socket } from "node:net";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const parent = new Socket({ fd: 3, readable: true, writable: false });
  const leave = (): void => process.exit(143);
  parent.on("error", leave);
  parent.on("close", leave);
  parent.resume();
  parent.unref();
}
