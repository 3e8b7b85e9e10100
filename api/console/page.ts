import { createHash } from 'node:crypto'
import { doorWords } from '#api/console/app/door-words.ts'
import { html, Html } from '#api/edge/html.ts'
import { mark, pageBar, pageHead } from '#api/edge/page-head.ts'

/**
 * The console may load its own files only: no inline script but one that is known by its hash, no inline style, no
 * form that is submitted, and no text that becomes markup, since `require-trusted-types-for` makes `innerHTML` throw.
 */
export const consolePolicy = (inlineScript: string): string =>
  `default-src 'none'; script-src 'self' 'sha256-${createHash('sha256').update(inlineScript).digest('base64')}'; ` +
  "style-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'"

type PageParts = {
  title: string
  /** The module that draws the page. */
  module: string
  /** Modules that the first view needs, by path. */
  preloadPaths: readonly string[]
}

/** The API reference, which its module draws below the bar. */
export const modulePage = ({ title, module, preloadPaths }: PageParts): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        ${pageHead(title)}
        <link rel="stylesheet" href="/console/style.css" />
        ${preloadPaths.map(path => html`<link rel="modulepreload" href="${path}" />`)}
      </head>
      <body>
        ${pageBar('/docs')}
        <div id="console"></div>
        <noscript>This page needs JavaScript.</noscript>
        <script type="module" src="${module}"></script>
      </body>
    </html> `.text

type DoorParts = PageParts & {
  /** What makes the form work until the console is loaded. */
  inlineScript: string
  /** The name of the login provider; null for none. */
  login: string | null
}

/** The page of the console: the form for signing in, as `SignIn` draws it, which asks for two files alone. */
export const consolePage = ({
  title,
  module,
  preloadPaths,
  inlineScript,
  login,
}: DoorParts): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        ${pageHead(title)}${login === null ? '' : html`<meta name="login" content="${login}" />`}
        ${new Html(`<script data-entry="${module}" data-modules="${preloadPaths.join(' ')}">${inlineScript}</script>`)}
        <link rel="stylesheet" href="/console/style.css" />
      </head>
      <body>
        ${door(login)}
        <noscript>This page needs JavaScript.</noscript>
      </body>
    </html> `.text

/** No space between elements: the console takes over those that are there, and moves none. */
const door = (login: string | null): Html =>
  new Html(
    html` <div id="console">
      <div class="app">
        <div class="door">
          <main class="door-card">
            ${mark}
            <div class="page stack-wide">
              <header class="section-head page-head">
                <div>
                  <h1 tabindex="-1">Memory Vault</h1>
                  <p class="quiet">${doorWords.description}</p>
                </div>
              </header>
              <form class="stack">
                <div class="field stack-close">
                  <label class="stack-close"
                    ><span class="field-label">Key</span
                    ><input
                      spellcheck="false"
                      aria-describedby="key-hint"
                      type="password"
                      required
                      autocomplete="off"
                      placeholder="mk_…" /></label
                  ><span id="key-hint" class="field-hint">${doorWords.hint}</span>
                </div>
                <div class="actions">
                  <button type="submit" class="button button-main">Open</button>
                </div>
              </form>
            </div>
            <p class="door-stuck notice" hidden>
              The console could not be loaded. <a href="/console">Try again</a>
            </p>
            ${login === null ? '' : html`<p class="door-login"><a class="button" href="/console/login">Sign in with ${login}</a></p>`}
          </main>
          <footer class="door-foot chips"><a href="/docs">API reference</a></footer>
        </div>
      </div>
    </div>`.text.replaceAll(/>\s+</g, '><'),
  )
