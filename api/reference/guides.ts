import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'
import { createAsset, type Asset } from '#api/edge/assets.ts'
import { Html, html } from '#api/edge/html.ts'

/** A guide may load our style sheet alone, and its form leads back to us. */
export const guidesSecurityPolicy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

type Guide = { name: string; title: string; file: string; about: string }

/** The pages of the project that are served, in reading order. */
export const guides: readonly Guide[] = [
  {
    name: 'start',
    title: 'Start',
    file: 'README.md',
    about: 'two commands, a first call, the SDKs of the model providers',
  },
  {
    name: 'api',
    title: 'Using the API',
    file: 'api/README.md',
    about: 'every concept and endpoint, clients, agents, teams',
  },
  {
    name: 'operations',
    title: 'Running it',
    file: 'scripts/README.md',
    about: 'commands, imports, settings, deploying, watching',
  },
  {
    name: 'containers',
    title: 'Containers',
    file: 'scripts/deploy/README.md',
    about: 'the image, compose, Kubernetes',
  },
  {
    name: 'typescript',
    title: 'TypeScript',
    file: 'api/client/README.md',
    about: 'the client for TypeScript',
  },
  {
    name: 'python',
    title: 'Python',
    file: 'api/client/python/README.md',
    about: 'the client for Python',
  },
  { name: 'words', title: 'Words and flows', file: 'shared/README.md', about: 'the glossary' },
  { name: 'changes', title: 'Changes', file: 'CHANGELOG.md', about: 'what each version changed' },
]

const root = new URL('../../', import.meta.url)
const readGuide = ({ file }: Guide): string => readFileSync(new URL(file, root), 'utf8')

/** A heading and what stands below it, up to the next one. */
type Section = { guide: Guide; heading: string; slug: string; text: string }

/** A heading's address in its page, as GitHub makes it. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')

/** Text of inline tokens, without marks. */
const plainText = (tokens: readonly Token[] | undefined): string =>
  (tokens ?? [])
    .map(token =>
      'tokens' in token && token.tokens
        ? plainText(token.tokens)
        : 'text' in token
          ? String(token.text)
          : '',
    )
    .join('')

/** A link of a page of the project as one of this service; undefined for files that are not served. */
function toServedLink(guide: Guide, href: string): string | undefined {
  if (/^(?:https?:|#|\/)/.test(href)) return href
  const [path, anchor] = href.split('#') as [string, string | undefined]
  const file = posix.join(posix.dirname(guide.file), path)
  const target = guides.find(one => one.file === file)
  return target && `/guides/${target.name}${anchor ? `#${anchor}` : ''}`
}

function renderGuide(guide: Guide): Html {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        const text = this.parser.parseInline(tokens)
        return `<h${depth} id="${slugOf(plainText(tokens))}">${text}</h${depth}>\n`
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens)
        const link = toServedLink(guide, href)
        return link === undefined ? text : html`<a href="${link}">${new Html(text)}</a>`.text
      },
      image({ href, text }: Tokens.Image) {
        return html`<img src="/guides/${posix.basename(href)}" alt="${text}" />`.text
      },
      table({ header, rows }: Tokens.Table) {
        const cells = (row: Tokens.TableCell[], tag: string): string =>
          row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')
        const body = rows.map(row => `<tr>${cells(row, 'td')}</tr>`).join('')
        return `<div class="table" tabindex="0"><table><thead><tr>${cells(header, 'th')}</tr></thead><tbody>${body}</tbody></table></div>`
      },
      code({ text }: Tokens.Code) {
        return html`<pre tabindex="0"><code>${text}</code></pre>`.text
      },
      // Comments of the pages are for the tests that run their commands.
      html: () => '',
    },
  })
  return new Html(marked.parse(readGuide(guide), { async: false }))
}

function sectionsOf(guide: Guide): Section[] {
  const sections: Section[] = []
  for (const token of new Marked().lexer(readGuide(guide))) {
    if (token.type === 'heading') {
      const heading = plainText(token.tokens)
      sections.push({ guide, heading, slug: slugOf(heading), text: '' })
    } else if (token.type !== 'html') sections.at(-1)!.text += `${token.raw.trim()}\n`
  }
  return sections
}

const page = (title: string, body: Html, current?: Guide, query = ''): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Memory Vault</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/guides/style.css" />
      </head>
      <body>
        <header>
          <nav aria-label="Guides">
            ${guides.map(
              guide =>
                html`<a
                  href="/guides/${guide.name}"
                  ${guide === current ? new Html('aria-current="page"') : ''}
                  >${guide.title}</a
                > `,
            )}
            <a href="/docs">API reference</a> <a href="/console">Console</a>
          </nav>
          <form action="/guides" role="search">
            <input
              type="search"
              name="q"
              value="${query}"
              aria-label="Find in the guides"
              placeholder="Find in the guides"
              required
            />
            <button>Find</button>
          </form>
        </header>
        <main>${body}</main>
      </body>
    </html> `.text

/** Headings of the second level, as links. */
const contents = (guide: Guide): Html => {
  const headings = new Marked()
    .lexer(readGuide(guide))
    .filter(token => token.type === 'heading' && token.depth === 2)
  return html`<nav class="contents" aria-label="On this page">
    <ul>
      ${headings.map(token => {
        const heading = plainText((token as Tokens.Heading).tokens)
        return html`<li><a href="#${slugOf(heading)}">${heading}</a></li>`
      })}
    </ul>
  </nav>`
}

const contentsPage = (): string =>
  page(
    'Guides',
    html`<h1>Guides</h1>
      <ul>
        ${guides.map(({ name, title, about }) => html`<li><a href="/guides/${name}">${title}</a>: ${about}</li>`)}
      </ul>`,
  )

/** For programs: what there is to read, one line each (https://llmstxt.org). */
const languageModelIndex = (): string => `# Memory Vault

> A self-hosted service that gives every user of an AI product a private, lasting memory.

## Guides

${guides.map(({ name, title, about }) => `- [${title}](/guides/${name}.md): ${about}`).join('\n')}

## Reference

- [OpenAPI](/openapi.json): every endpoint, with examples of requests and answers
`

const text = 'text/html; charset=utf-8'
const markdown = 'text/markdown; charset=utf-8'

/** The guides by path: as pages and as Markdown, their style sheet, and the index for language models. */
export const guideFiles = (): Record<string, Asset> => ({
  '/guides': createAsset(text, contentsPage()),
  '/llms.txt': createAsset('text/plain; charset=utf-8', languageModelIndex()),
  '/guides/picture.png': createAsset(
    'image/png',
    readFileSync(new URL('../console/picture.png', import.meta.url)),
  ),
  '/guides/style.css': createAsset(
    'text/css; charset=utf-8',
    ['../console/style/tokens.css', 'guides.css']
      .map(file => readFileSync(new URL(file, import.meta.url), 'utf8'))
      .join('\n'),
  ),
  ...Object.fromEntries(
    guides.flatMap(guide => [
      [`/guides/${guide.name}.md`, createAsset(markdown, readGuide(guide))],
      [
        `/guides/${guide.name}`,
        createAsset(text, page(guide.title, html`${contents(guide)}${renderGuide(guide)}`, guide)),
      ],
    ]),
  ),
})

let sections: Section[] | undefined

/** The sections that have every word of a query, those with all words in their heading first. */
export function findInGuides(query: string): string {
  sections ??= guides.flatMap(sectionsOf)
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word !== '')
  const hasAll = (value: string): boolean => words.every(word => value.toLowerCase().includes(word))
  const found = sections
    .filter(({ heading, text }) => hasAll(`${heading} ${text}`))
    .toSorted((one, other) => Number(hasAll(other.heading)) - Number(hasAll(one.heading)))
    .slice(0, 30)
  const body = html`<h1>${query}</h1>
    ${found.length === 0 ? html`<p>No section has all of these words.</p>` : ''}
    <ol class="found">
      ${found.map(
        ({ guide, heading, slug, text }) =>
          html`<li>
            <a href="/guides/${guide.name}#${slug}">${guide.title}: ${heading}</a>
            <p>${excerpt(text, words[0]!)}</p>
          </li>`,
      )}
    </ol>`
  return page(`${query}: guides`, body, undefined, query)
}

/** Some 200 characters of a text around a word. */
function excerpt(text: string, word: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 80)
  return `${at > 0 ? '…' : ''}${text.slice(at, at + 200)}…`
}
