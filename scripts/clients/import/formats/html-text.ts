const blockTags = new Set(
  'p br div li ul ol h1 h2 h3 h4 h5 h6 tr table pre blockquote hr'.split(' '),
)
const hiddenTags = new Set(['script', 'style'])

/** The named characters U+00A0 to U+00FF in their order, of HTML 4.01, 24.2.1. */
const latin1Names =
  `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro
para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave
Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc
Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc
iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml`.split(
    /\s+/,
  )

/** Characters of the markup itself, letters beyond Latin-1 and punctuation, of HTML 4.01, 24.4. */
const otherNames =
  `amp & lt < gt > quot " apos ' ndash – mdash — hellip … bull • euro € trade ™ lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ”
bdquo „ OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ`.split(/\s+/)

const entities: ReadonlyMap<string, string> = new Map([
  ...latin1Names.map((name, index) => [name, String.fromCodePoint(0xa0 + index)] as const),
  ...otherNames.flatMap((name, index) =>
    index % 2 === 0 ? [[name, otherNames[index + 1]!] as const] : [],
  ),
])

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
  text.replaceAll(/&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,5});/gi, (all, name: string) => {
    if (!name.startsWith('#')) return entities.get(name) ?? entities.get(name.toLowerCase()) ?? all
    const code = Number(/^#x/i.test(name) ? `0${name.slice(1)}` : name.slice(1))
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all
  })
