import type { Diagnostic } from "../../model.ts";
import type { Project } from "../../project/project.ts";
import type { StackConfig } from "../../project/stackConfig.ts";
import type { RunLog } from "../../runLog.ts";
import { type Monitor, startMonitorServer } from "./monitorServer.ts";
import { DynamicProvider } from "./providerProcess.ts";

/** The engine's server and the provider's process for one pass. */
export type Connection = {
  address: string;
  provider: Promise<DynamicProvider>;
  /** Ends both. */
  close(): Promise<void>;
};

/**
 * Starts the server, and the provider beside it. `serve` makes what answers a program; without it (refresh, destroy)
 * only the provider's messages are listened to.
 */
export async function createConnection(
  settings: { project: Project; stack: string; config: StackConfig; env: NodeJS.ProcessEnv },
  log: RunLog,
  serve?: (provider: Promise<DynamicProvider>) => Monitor,
): Promise<Connection> {
  const { project, config, env, stack } = settings;
  const onDiagnostic = (diagnostic: Diagnostic): void => log.diagnostic(diagnostic);
  let start: (provider: Promise<DynamicProvider>) => void = () => {};
  const provider = new Promise<DynamicProvider>((resolve) => {
    start = resolve;
  });
  provider.catch(() => {});
  const monitor = serve?.(provider) ?? silentMonitor(stack, project.name, onDiagnostic);
  const server = await startMonitorServer(monitor);
  start(DynamicProvider.start({ project, config, env, engineAddress: server.address, onDiagnostic }));
  return {
    address: server.address,
    provider,
    async close() {
      await provider.then(
        (started) => started.stop(),
        () => {},
      );
      server.close();
    },
  };
}

function silentMonitor(
  stack: string,
  project: string,
  diagnostic: (diagnostic: Diagnostic) => void,
): Monitor {
  const refuse = (): Promise<never> => Promise.reject(new Error("no program is running"));
  return {
    scope: { stack, project, aliasOf: () => undefined },
    register: refuse,
    registerOutputs: () => {},
    finished: refuse,
    unsupported: () => {},
    diagnostic,
  };
}
