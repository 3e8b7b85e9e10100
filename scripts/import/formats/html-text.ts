const blockTags = new Set(
  'p br div li ul ol h1 h2 h3 h4 h5 h6 tr table pre blockquote hr'.split(' '),
)
const hiddenTags = new Set(['script', 'style'])

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
}

/** The words of a piece of HTML, a line for each block. */
export function htmlToText(html: string): string {
  let text = ''
  let hidden: string | undefined
  for (let at = 0; at < html.length;) {
    const open = html.indexOf('<', at)
    const end = open === -1 ? html.length : open
    if (hidden === undefined) text += decodeEntities(html.slice(at, end))
    const close = open === -1 ? -1 : html.indexOf('>', open)
    if (close === -1) break
    const tag = /^\/?([a-z0-9]{1,20})/i.exec(html.slice(open + 1, open + 24))?.[1]?.toLowerCase()
    if (tag !== undefined && blockTags.has(tag)) text += '\n'
    if (tag !== undefined && hiddenTags.has(tag)) hidden = html[open + 1] === '/' ? undefined : tag
    at = close + 1
  }
  return text
    .split('\n')
    .map(line => line.replaceAll(/[\t\r\u00A0 ]{1,1000}/g, ' ').trim())
    .filter(line => line !== '')
    .join('\n')
}

const decodeEntities = (text: string): string =>
  text.replaceAll(/&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,6});/gi, (all, name: string) => {
    if (!name.startsWith('#')) return entities[name.toLowerCase()] ?? all
    const code = Number(/^#x/i.test(name) ? `0${name.slice(1)}` : name.slice(1))
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all
  })
