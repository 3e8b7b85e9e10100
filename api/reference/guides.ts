import { existsSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'
import { createAsset, type Asset } from '#api/edge/assets.ts'
import { Html, html } from '#api/edge/html.ts'
import pagesByGroup from '#api/reference/guides.json' with { type: 'json' }

/** A guide may load our style sheet alone, and its form leads back to us. */
export const guidesSecurityPolicy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

type Guide = {
  name: string
  group: string
  file: string
  title: string
  /** Its first sentence. */
  about: string
  /** What readers call its subject, from a comment `<!-- found by: … -->` below the title. */
  foundBy: string
}

const root = new URL('../../', import.meta.url)

/** The pages that are served, in reading order, by group; a task page has the name of its file. */
const files = pagesByGroup as Record<string, (string | string[])[]>

const fileOf = (name: string): string =>
  ['api', 'scripts']
    .map(room => `${room}/guides/${name}.md`)
    .find(file => existsSync(new URL(file, root)))!

const readGuide = ({ file }: { file: string }): string => readFileSync(new URL(file, root), 'utf8')

/** Words of Markdown without links, code and emphasis. */
const withoutMarks = (text: string): string =>
  text
    .replaceAll(/\]\([^()]*\)/g, '')
    .replaceAll(/[[*`]/g, '')
    .replaceAll(/\s+/g, ' ')

/** The pages of the project that are served, in reading order. */
export const guides: readonly Guide[] = Object.entries(files).flatMap(([group, pages]) =>
  pages.map(page => {
    const [name = '', file = ''] = typeof page === 'string' ? [page, fileOf(page)] : page
    const text = readGuide({ file })
    const [title = '', ...blocks] = text.split('\n\n')
    const first = blocks.find(block => /^[\p{L}`*[]/u.test(block)) ?? ''
    return {
      name,
      group,
      file,
      title: title.replace(/^# /, ''),
      about: withoutMarks(first)
        .split(/(?<=[.?:])\s/)[0]!
        .replace(/:\s*$/, '.'),
      foundBy: /<!-- found by: ([^<]*?) -->/.exec(text)?.[1] ?? '',
    }
  }),
)

/** A heading and what stands below it, up to the next one. */
type Section = { guide: Guide; heading: string; slug: string; text: string }

/** A heading's address in its page, as GitHub makes it. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')

/** Text of inline tokens, without marks. */
function plainText(tokens: readonly Token[] | undefined): string {
  return (tokens ?? [])
    .map(token =>
      'tokens' in token && token.tokens
        ? plainText(token.tokens)
        : 'text' in token
          ? String(token.text)
          : '',
    )
    .join('')
}

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
            <a href="/guides">Guides</a>
            ${guides
              .filter(({ group }) => group === current?.group)
              .map(
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
      ${Object.keys(files).map(
        group =>
          html`<h2>${group}</h2>
            <ul>
              ${guides
                .filter(guide => guide.group === group)
                .map(
                  ({ name, title, about }) =>
                    html`<li><a href="/guides/${name}">${title}</a>: ${about}</li>`,
                )}
            </ul>`,
      )}`,
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

/** A section with its different words, and those of its page's title and of what readers call it. */
type IndexedSection = Section & { words: Record<'title' | 'heading' | 'text', readonly string[]> }

let sections: IndexedSection[] | undefined

const wordsOf = (text: string): string[] => [
  ...new Set(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []),
]

const indexSection = (section: Section): IndexedSection => ({
  ...section,
  words: {
    title: wordsOf(`${section.guide.title} ${section.guide.foundBy}`),
    heading: wordsOf(section.heading),
    text: wordsOf(section.text),
  },
})

/** Words that say nothing of a subject. */
const small = new Set(
  'a an and are can do does for how i in is it me my of on or the to what why with'.split(' '),
)

/**
 * The sections that have words of a query, best first.
 * A word in a title, or among what readers call a page, counts most, then one in a heading, then one in the text.
 */
export function findInGuides(query: string): string {
  sections ??= guides.flatMap(sectionsOf).map(indexSection)
  const all = wordsOf(query)
  const words = all.some(word => !small.has(word)) ? all.filter(word => !small.has(word)) : all
  const weigh = ({ guide, slug, words: { title, heading, text } }: IndexedSection): number => {
    const isPage = slug === slugOf(guide.title)
    const begins = (known: readonly string[], word: string): boolean =>
      known.some(one => one.startsWith(word))
    return words.reduce((sum, word) => {
      if (begins(title, word)) return sum + (isPage ? 12 : 6)
      return sum + (begins(heading, word) ? 5 : begins(text, word) ? 1 : 0)
    }, 0)
  }
  const found = sections
    .map(section => ({ ...section, weight: weigh(section) }))
    .filter(({ weight }) => weight > 0)
    .toSorted((one, other) => other.weight - one.weight)
    .slice(0, 30)
  const body = html`<h1>${query}</h1>
    ${found.length === 0 ? html`<p>No section has any of these words.</p>` : ''}
    <ol class="found">
      ${found.map(
        ({ guide, heading, slug, text }) =>
          html`<li>
            <a href="/guides/${guide.name}#${slug}"
              >${heading === guide.title ? heading : `${guide.title}: ${heading}`}</a
            >
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
