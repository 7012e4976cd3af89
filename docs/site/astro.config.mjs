import starlight from "@astrojs/starlight";
import { defineConfig } from "astro/config";
import { sidebar } from "./content.ts";

export default defineConfig({
  // Relative to the root of the server that hosts the site; set it with: npm run docs:site -- --base /gatehouse
  outDir: "dist",
  integrations: [
    starlight({
      title: "Gatehouse",
      description: "Access policy as code: manage who can SSH into which device",
      customCss: ["./src/site.css"],
      sidebar: sidebar(),
    }),
  ],
});
