// A program with public keys of the service, or with resources that do nothing, depending on KIND.
const { readFileSync } = require("node:fs");
const pulumi = require("@pulumi/pulumi");

const nothing = {
  async check(_olds, news) {
    return { inputs: news };
  },
  async diff(_id, olds, news) {
    return { changes: olds.username !== news.username };
  },
  async create(inputs) {
    return { id: inputs.name, outs: inputs };
  },
  async read(id, props) {
    return { id, props };
  },
  async update(_id, _olds, news) {
    return { outs: news };
  },
  async delete() {},
};

class Nothing extends pulumi.dynamic.Resource {
  constructor(name, args) {
    super(nothing, name, args);
  }
}

const Kind = process.env.KIND === "nothing" ? Nothing : require("@gatehouse-access/provider").PublicKey;
const lines = readFileSync(process.env.KEYS, "utf8").trim().split("\n");
for (const [index, data] of lines.entries()) {
  new Kind(`key-${index}`, {
    name: `key ${index}`,
    data,
    username: "^root$",
    filter: { hostname: "^web-" },
  });
}
