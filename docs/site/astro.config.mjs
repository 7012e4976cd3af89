import { satteri } from "@astrojs/markdown-satteri";
import starlight from "@astrojs/starlight";
import { defineConfig } from "astro/config";
import { sidebar } from "./content.ts";
import { tableLabels } from "./tableLabels.mjs";

export default defineConfig({
  markdown: { processor: satteri({ hastPlugins: [tableLabels] }) },
  // All links work below any path of a server: npm run docs:site -- --base /gatehouse
  integrations: [
    starlight({
      title: "Gatehouse",
      description: "Access policy as code: manage who can SSH into which device",
      customCss: ["./src/site.css"],
      expressiveCode: { defaultProps: { frame: "none" } },
      sidebar: sidebar(),
    }),
  ],
});
