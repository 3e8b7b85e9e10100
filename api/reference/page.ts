import { readFileSync } from 'node:fs'
import { createAsset, type Asset } from '#api/edge/assets.ts'

/** A page of this service may load its own files and nothing from other hosts. */
export const docsSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const pageHtml = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Memory Vault: API reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<main id="reference"></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const swaggerStartScript = `const darkScheme = matchMedia('(prefers-color-scheme: dark)')
const followBrowser = () =>
  document.documentElement.classList.toggle('dark-mode', darkScheme.matches)
darkScheme.addEventListener('change', followBrowser)
followBrowser()

window.onload = () => {
  SwaggerUIBundle({
    url: '/openapi.json',
    dom_id: '#reference',
    deepLinking: true,
    validatorUrl: null,
    persistAuthorization: false,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    docExpansion: 'list',
  })
}
`

const readSwaggerFile = (name: string): Buffer =>
  readFileSync(new URL(import.meta.resolve(`swagger-ui-dist/${name}`)))

/** The interactive reference: the page and its files, by path. Everything comes from this service. */
export const referencePageFiles = (): Record<string, Asset> => ({
  '/docs': createAsset('text/html; charset=utf-8', pageHtml),
  '/docs/start.js': createAsset('text/javascript; charset=utf-8', swaggerStartScript),
  '/docs/swagger-ui-bundle.js': createAsset(
    'text/javascript; charset=utf-8',
    readSwaggerFile('swagger-ui-bundle.js'),
  ),
  '/docs/swagger-ui.css': createAsset('text/css; charset=utf-8', readSwaggerFile('swagger-ui.css')),
})
