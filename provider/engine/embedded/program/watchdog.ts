// Loaded into every child process before its own code. The parent holds the other end of descriptor 3: when that
// closes the parent is gone, however it ended, and this process must not outlive it.
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
