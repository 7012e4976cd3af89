import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { definitions } from "../../provider/resources/index.ts";
import { sampleOf } from "../provider/support/samples.ts";
import { startWorld, type World } from "../provider/support/world.ts";
import { testFolder } from "../support/folder.ts";
import { RootModule, startProvider } from "./support/terraform.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());
const snake = (t: string) => t.replaceAll(/[A-Z]/g, (l) => `_${l.toLowerCase()}`);
it("tries", async () => {
  const provider = await startProvider(world.env);
  const root = new RootModule(testFolder(), { ...provider.env, ...world.env });
  root.write({});
  console.log(await root.must("validate"));
  const resource: Record<string, unknown> = {};
  for (const d of definitions) {
    const { base } = sampleOf(d);
    const inputs = Object.fromEntries(
      Object.entries(world.here(base))
        .filter(([, v]) => v !== undefined)
        .map(([k, v]) => [
          snake(k),
          d.name === "Namespace" && k === "settings"
            ? Object.fromEntries(Object.entries(v as object).map(([k, v]) => [snake(k), v]))
            : v,
        ]),
    );
    if (d.name === "ApiKey") inputs.key_wo = crypto.randomUUID();
    resource[`gatehouse${snake(d.name)}`] = { one: inputs };
  }
  root.write({ resource });
  console.log(JSON.stringify(resource, null, 1));
  let r = await root.run("validate");
  console.log(r.output);
  r = await root.run("plan", "-no-color");
  console.log(r.output);
  {
    const s = root.start("apply", "-auto-approve", "-no-color");
    const o = await Promise.race([
      s.ended,
      new Promise<any>((r) => setTimeout(() => r({ output: s.output(), code: null }), 15000)),
    ]);
    console.log(o.output.slice(-6000));
    s.child.kill("SIGKILL");
  }
  r = await root.run("plan", "-no-color", "-detailed-exitcode");
  console.log(r.code, r.output);
  r = await root.run("destroy", "-auto-approve", "-no-color");
  console.log(r.code, r.output.slice(-3000));
  await provider.stop();
});
