import { SHORT_LIVED } from "./test/support/nodeFlags.ts";
import config from "./vitest.config.ts";
export default {
  ...config,
  test: {
    maxWorkers: 1,
    testTimeout: 60000,
    hookTimeout: 60000,
    isolate: false,
    execArgv: SHORT_LIVED,
    tags: [{ name: "long", description: "" }],
    include: ["test/**/*.test.ts"],
    setupFiles: "/tmp/srvp/setup.ts",
  },
};
