import { html, type View } from '#api/console/app/html.ts'

type Speaker = { role: string; name?: string | undefined; tier?: number }

const hues = 6

/** The colours of a speaker: roles have their own, each name keeps one of six. */
export function speakerClass({ role, name, tier = 1 }: Speaker): string {
  if (tier > 1) return tier === 2 ? 'speaker-reflection' : 'speaker-high'
  if (name === undefined) return role === 'user' ? 'speaker-user' : 'speaker-assistant'
  let sum = 0
  for (const character of name) sum = (sum * 31 + character.codePointAt(0)!) % 9_973
  return `speaker-${sum % hues}`
}

/** A disc with the first letter of a speaker. The name stands beside it. */
export const avatar = (speaker: Speaker): View =>
  html`<span class=${`avatar ${speakerClass(speaker)}`} aria-hidden="true">
    ${firstLetter(speaker.name ?? speaker.role)}
  </span>`

const firstLetter = (name: string): string =>
  String.fromCodePoint(name.trim().codePointAt(0) ?? 0x3f).toLocaleUpperCase('en')
