// What the Pulumi CLI takes for the plugin while a recording is made: it starts the real one, and hands each call and
// each answer on as they are. What it sees it writes to a file of its own in the folder of GATEHOUSE_RECORDER, one line
// for each event, because the CLI kills a plugin that it needs no more.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import type { RecorderEvent } from "./events.ts";
import { type Method, methods, readError, readRequest, readResponse } from "./messages.ts";
import { asBuffer, startPlugin } from "./pluginProcess.ts";

const file = join(process.env.GATEHOUSE_RECORDER ?? "", `${process.pid}.jsonl`);

function write(event: RecorderEvent): void {
  appendFileSync(file, `${JSON.stringify(event)}\n`);
}

// The one clock that is the same for all processes.
const now = () => String(process.hrtime.bigint());

const { GATEHOUSE_RECORDER: _, ...env } = process.env;
const args = process.argv.slice(2);
write({ what: "start", at: now(), args, env: settingsOf(env) });
const plugin = await startPlugin(args, env);
plugin.child.stderr.pipe(process.stderr);
plugin.child.once("exit", (code) => process.exit(code ?? 1));
// Without this one the plugin would stay.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  process.once(signal, () => {
    plugin.kill();
    process.exit(1);
  });
}

let calls = 0;
const server = new grpc.Server({
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
});
const service = methods.map((method) => {
  const raw = { requestSerialize: asBuffer, requestDeserialize: asBuffer };
  const answer = { responseSerialize: asBuffer, responseDeserialize: asBuffer };
  return [method.name, { path: method.path, requestStream: false, responseStream: false, ...raw, ...answer }];
});
server.addService(
  Object.fromEntries(service) as grpc.ServiceDefinition,
  Object.fromEntries(methods.map((method) => [method.name, forwarding(method)])),
);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  process.stdout.write(`${port}\n`);
});

function forwarding(method: Method): grpc.handleUnaryCall<Buffer, Uint8Array> {
  return ({ request, metadata }, done) => {
    const call = calls++;
    write({ what: "call", at: now(), call, method: method.name, request: readRequest(method, request) });
    plugin.call(method, request, metadata).then(
      (bytes) => {
        const response = readResponse(method.response, bytes);
        write({ what: "outcome", at: now(), call, outcome: { response } });
        done(null, bytes);
      },
      (error: grpc.ServiceError) => {
        write({ what: "outcome", at: now(), call, outcome: { error: readError(error) } });
        done(error);
      },
    );
  };
}

/** What the plugin may read of its environment. */
function settingsOf(all: NodeJS.ProcessEnv): Record<string, string> {
  const settings = Object.entries(all).filter(([name]) => /^(GATEHOUSE|PULUMI)_/.test(name));
  return Object.fromEntries(settings.map(([name, value]) => [name, value ?? ""]));
}
