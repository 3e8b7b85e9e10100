import { existsSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'
import { createAsset, type Asset } from '#api/edge/assets.ts'
import { Html, html } from '#api/edge/html.ts'
import { pageBar, pageHead } from '#api/edge/page-head.ts'
import pagesByGroup from '#api/reference/guides.json' with { type: 'json' }

/** A guide may load our style sheets and the script of its copy buttons, and its form leads back to us. */
export const guidesSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

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

function renderGuide(guide: Guide, text: string): Html {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        // The page has the title, above its contents.
        if (depth === 1) return ''
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
        // On a phone a row stands as pairs: each cell has the name of its column.
        const names = header.map(({ tokens }) => html` data-name="${plainText(tokens)}"`.text)
        const cells = (row: Tokens.TableCell[], tag: string): string =>
          row
            .map(
              ({ tokens }, at) => `<${tag}${names[at]}>${this.parser.parseInline(tokens)}</${tag}>`,
            )
            .join('')
        const body = rows.map(row => `<tr>${cells(row, 'td')}</tr>`).join('')
        return `<div class="table" tabindex="0"><table><thead><tr>${cells(header, 'th')}</tr></thead><tbody>${body}</tbody></table></div>`
      },
      code({ text }: Tokens.Code) {
        return html`<div class="code-frame">
          <pre tabindex="0"><code>${text}</code></pre>
        </div>`.text
      },
      // Comments of the pages are for the tests that run their commands.
      html: () => '',
    },
  })
  return new Html(marked.parse(text, { async: false }))
}

/** The sentences of paragraphs and lists, without code, tables and diagrams. */
const proseIn = (text: string): string => new Marked().lexer(text).map(proseOf).join(' ').trim()

const proseOf = (token: Token): string =>
  token.type === 'list'
    ? (token as Tokens.List).items.map(one => one.tokens.map(proseOf).join(' ')).join(' ')
    : /^(?:paragraph|text)$/.test(token.type)
      ? plainText([token])
      : ''

/** A guide without its links to further ones, and these. */
const partsOf = (guide: Guide): string[] => readGuide(guide).split('\n## Next\n')

function sectionsOf(guide: Guide): Section[] {
  const sections: Section[] = []
  for (const token of new Marked().lexer(partsOf(guide)[0]!)) {
    if (token.type === 'heading') {
      const heading = plainText(token.tokens)
      sections.push({ guide, heading, slug: slugOf(heading), text: '' })
    } else if (token.type !== 'html') sections.at(-1)!.text += `${token.raw.trim()}\n\n`
  }
  return sections
}

const guideLink = ({ name, title }: Guide, current?: Guide): Html =>
  html`<a href="/guides/${name}" aria-current="${name === current?.name ? 'page' : 'false'}"
    >${title}</a
  >`

const guidesOf = (group: string): Guide[] => guides.filter(guide => guide.group === group)

const page = (title: string, body: Html, current?: Guide, query = ''): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        ${pageHead(`${title} · Memory Vault`)}
        <link rel="stylesheet" href="/console/style.css" />
        <link rel="stylesheet" href="/guides/style.css" />
        <script type="module" src="/console/app/reference/guide.ts"></script>
      </head>
      <body>
        ${pageBar('/guides')}
        <div class="columns">
          <nav class="side places" aria-label="Guides">
            ${Object.keys(files).map(
              group =>
                html`<details ${new Html(group === current?.group ? 'open' : '')}>
                  <summary>${group}</summary>
                  <ul>
                    ${guidesOf(group).map(guide => html`<li>${guideLink(guide, current)}</li>`)}
                  </ul>
                </details>`,
            )}
          </nav>
          <main class="main guide">
            <form class="search-line" action="/guides" role="search">
              <input name="q" value="${query}" placeholder="Find in the guides" required />
              <button class="button">Find</button>
            </form>
            ${body}
          </main>
        </div>
      </body>
    </html> `.text

/** Headings of the second level, as links. */
const contents = (guide: Guide): Html => {
  const headings = new Marked()
    .lexer(partsOf(guide)[0]!)
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

const aboutList = (title: string, shown: readonly Guide[]): Html =>
  html`<h2 id="${slugOf(title)}">${title}</h2>
    <ul class="plain rows">
      ${shown.map(
        guide =>
          html`<li class="row">
            ${guideLink(guide)}
            <p class="quiet">${guide.about}</p>
          </li>`,
      )}
    </ul>`

function contentsPage(): string {
  const groups = Object.keys(files).map(group => aboutList(group, guidesOf(group)))
  return page(
    'Guides',
    html`<h1>Guides</h1>
      <p>
        <a href="/guides/connect-an-sdk">Add memory to your product</a> ·
        <a href="/guides/agents">Connect a coding agent</a> · <a href="/guides/deploy">Run it</a>
      </p>
      <nav class="groups" aria-label="Groups">
        ${Object.keys(files).map(group => html`<a href="#${slugOf(group)}">${group}</a> `)}
      </nav>
      ${groups}`,
  )
}

/** A guide, and the three that follow it; after the last come the first. */
function guidePage(guide: Guide): string {
  const at = guides.indexOf(guide) + 1
  const following = [...guides, ...guides].slice(at, at + 3)
  const [main = '', next = ''] = partsOf(guide)
  const body = html`<p class="quiet"><a href="/guides">Guides</a> / ${guide.group}</p>
    <h1 id="${slugOf(guide.title)}">${guide.title}</h1>
    ${contents(guide)}
    <article>${renderGuide(guide, main)}</article>
    <footer class="further">${aboutList('Read on', following)} ${renderGuide(guide, next)}</footer>`
  return page(guide.title, body, guide)
}

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

const readBeside = (file: string): Buffer => readFileSync(new URL(file, import.meta.url))

/** The guides by path: as pages and as Markdown, their style sheet, and the index for language models. */
export const guideFiles = (): Record<string, Asset> => ({
  '/guides': createAsset(text, contentsPage()),
  '/llms.txt': createAsset('text/plain; charset=utf-8', languageModelIndex()),
  '/guides/picture.png': createAsset('image/png', readBeside('../console/picture.png')),
  '/guides/style.css': createAsset('text/css; charset=utf-8', readBeside('guides.css')),
  ...Object.fromEntries(
    guides.flatMap(guide => [
      [`/guides/${guide.name}.md`, createAsset(markdown, readGuide(guide))],
      [`/guides/${guide.name}`, createAsset(text, guidePage(guide))],
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
            <p>${excerpt(proseIn(text) || guide.about, words)}</p>
          </li>`,
      )}
    </ol>
    <details class="further-hits"><summary>Show all ${found.length}</summary></details>`
  return page(`${query}: guides`, body, undefined, query)
}

/** A word that begins alone; nothing of a name with signs in it. */
const loneWord = /((?<![^\s(])[\p{L}\p{N}_]+)/u

/** Some 200 characters of prose, in whole words, around the first of these words, which are bold. */
function excerpt(prose: string, words: readonly string[]): Html {
  const plain = prose.replaceAll(/\s+/g, ' ')
  const isAsked = (part: string, index: number): boolean =>
    index % 2 === 1 && words.some(word => part.toLowerCase().startsWith(word))
  const parts = plain.split(loneWord)
  const first = parts.findIndex(isAsked)
  const at = parts.slice(0, Math.max(first, 0)).join('').length
  const rest = plain.slice(at < 80 ? 0 : plain.indexOf(' ', at - 80) + 1)
  const cut = rest.length > 200 ? `${rest.slice(0, 200).replace(/\s\S*$/, '')} …` : rest
  return html`${at < 80 ? '' : '… '}${cut.split(loneWord).map((part, index) => (isAsked(part, index) ? html`<b>${part}</b>` : html`${part}`))}`
}
