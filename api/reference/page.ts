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
<style>.guides { font: 15px system-ui, sans-serif; max-width: 1460px; margin: 1rem auto 0; padding: 0 20px; }</style>
</head>
<body>
<p class="guides"><a href="/guides">Guides</a> <a href="/console">Console</a> <a href="/llms.txt">llms.txt</a></p>
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

const start = 'Start here'
const isOpen = (tag, phrase) => phrase !== '' || tag === start
const lower = text => String(text ?? '').toLowerCase()

/** Operations whose method, path, summary, description or group has every word of the phrase. */
const filterOperations = (groups, phrase) => {
  const words = lower(phrase).split(/\\s+/)
  return groups
    .map((group, tag) =>
      group.update('operations', operations =>
        operations.filter(one => {
          const texts = ['summary', 'description'].map(name => one.getIn(['operation', name]))
          const text = lower([tag, one.get('method'), one.get('path'), ...texts].join(' '))
          return words.every(word => text.includes(word))
        }),
      ),
    )
    .filter(group => group.get('operations').size > 0)
}

/** Opens all groups while something is looked for, else the first one. */
const openGroups = (system, phrase) => {
  for (const { name } of system.specSelectors.specJson().get('tags')?.toJS() ?? []) {
    system.layoutActions.show(['operations-tag', name], isOpen(name, phrase))
  }
}

/** Credentials are kept until the tab is closed, never beyond. */
const stored = 'memory-vault.reference'
const keep = system => {
  const authorized = system.authSelectors.authorized().toJS()
  sessionStorage.setItem(stored, JSON.stringify(authorized))
}
const keepAfter = () => (original, system) => payload => {
  original(payload)
  keep(system)
}

window.onload = () => {
  const reference = SwaggerUIBundle({
    url: '/openapi.json',
    dom_id: '#reference',
    deepLinking: true,
    validatorUrl: null,
    persistAuthorization: false,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: -1,
    docExpansion: 'list',
    filter: true,
    plugins: [
      {
        fn: { opsFilter: filterOperations },
        statePlugins: {
          layout: {
            wrapActions: {
              updateFilter: (original, system) => phrase => {
                openGroups(system, phrase === true ? '' : phrase)
                return original(phrase)
              },
            },
          },
          auth: { wrapActions: { authorize: keepAfter(), logout: keepAfter() } },
        },
      },
    ],
    onComplete: () => {
      const system = reference.getSystem()
      if (!location.hash) openGroups(system, '')
      system.authActions.authorize(JSON.parse(sessionStorage.getItem(stored) ?? '{}'))
      document.querySelector('.operation-filter-input').placeholder = 'Find by word or path'
    },
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
