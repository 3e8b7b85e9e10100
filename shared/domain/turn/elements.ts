/** An XML-like element of a text: its tags, and what stands between them. */
export type TextElement = {
  /** In kebab case: `user_query` and `userQuery` are `user-query`. */
  name: string
  /** As it was written. */
  rawName: string
  start: number
  innerStart: number
  innerEnd: number
  end: number
}

type Tag = { rawName: string; name: string; start: number; end: number; isClosing: boolean }

const nameMax = 64
const attributesMax = 512
/** Tags after these are read as words. */
const tagsMax = 20_000

/**
 * The elements of a text by their start, nested ones included. A tag without its counterpart is no element.
 * Linear: a tag ends before the next `<`, and each closing tag takes the last open one of its name.
 */
export function findElements(text: string): TextElement[] {
  const open = new Map<string, Tag[]>()
  const elements: TextElement[] = []
  for (const tag of scanTags(text)) {
    const waiting = open.get(tag.name)
    if (!tag.isClosing) {
      if (waiting) waiting.push(tag)
      else open.set(tag.name, [tag])
      continue
    }
    const opening = waiting?.pop()
    if (opening === undefined) continue
    const { name, rawName, start } = opening
    const inner = { innerStart: opening.end, innerEnd: tag.start }
    elements.push({ name, rawName, start, ...inner, end: tag.end })
  }
  return elements.toSorted((one, other) => one.start - other.start)
}

function* scanTags(text: string): Generator<Tag> {
  let count = 0
  for (let at = text.indexOf('<'); at >= 0 && count < tagsMax; at = text.indexOf('<', at + 1)) {
    const tag = readTag(text, at)
    if (tag === undefined) continue
    count++
    yield tag
  }
}

function readTag(text: string, start: number): Tag | undefined {
  const isClosing = text[start + 1] === '/'
  const nameStart = start + (isClosing ? 2 : 1)
  const nameEnd = findNameEnd(text, nameStart)
  if (nameEnd === undefined) return undefined
  const end = findTagEnd(text, nameEnd)
  if (end === undefined) return undefined
  const rawName = text.slice(nameStart, nameEnd)
  return { rawName, name: kebabCase(rawName), start, end, isClosing }
}

function findNameEnd(text: string, start: number): number | undefined {
  let at = start
  while (at - start <= nameMax && isNameCharacter(text.charCodeAt(at), at === start)) at++
  return at > start && at - start <= nameMax ? at : undefined
}

function isNameCharacter(code: number, isFirst: boolean): boolean {
  if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90)) return true
  // Digits, and the four of "-._:".
  return !isFirst && ((code >= 48 && code <= 58) || code === 45 || code === 46 || code === 95)
}

/** @returns undefined for a tag that is empty in itself (`<br/>`), or does not end before the next one. */
function findTagEnd(text: string, nameEnd: number): number | undefined {
  const first = text[nameEnd]
  if (first === '>') return nameEnd + 1
  if (first !== ' ' && first !== '\n' && first !== '\t' && first !== '\r') return undefined
  for (let at = nameEnd; at < nameEnd + attributesMax && at < text.length; at++) {
    if (text[at] === '<') return undefined
    if (text[at] === '>') return text[at - 1] === '/' ? undefined : at + 1
  }
  return undefined
}

const kebabCase = (name: string): string =>
  name
    .replaceAll(/([a-z])([A-Z])/g, '$1-$2')
    .replaceAll(/[_.:]/g, '-')
    .toLowerCase()
