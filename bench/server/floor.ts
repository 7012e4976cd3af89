// The baseline server ("floor") of the comparison: a minimal Fastify route that reads one row by its id, with the
// database module of the service. The benchmark runs this file as a separate process:
// `node bench/server/floor.ts <database URL>`.
import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { openForBench } from "./databases.ts";
import { FLOOR_NAMESPACE, tenantOf } from "./namespaces.ts";

const { client } = await openForBench(process.argv[2] ?? "");
const app = Fastify();
const where = { tenantId: tenantOf(FLOOR_NAMESPACE) };
app.get("/", () => client.namespace.findUniqueOrThrow({ where }));
await app.listen({ host: "127.0.0.1", port: 0 });
const { port } = app.server.address() as AddressInfo;
console.log(JSON.stringify({ msg: "listening", address: `http://127.0.0.1:${port}` }));
