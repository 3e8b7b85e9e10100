import {
  formatDateTime,
  formatDayTime,
  formatPercent,
  formatRelativeTime,
  formatShortDay,
  formatTime,
  toIsoString,
  type DateLike,
} from '#api/console/app/format.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'
import words from '#api/console/app/parts/words.json' with { type: 'json' }
import type { Metadata, Tier } from '#api/contract/generated/types.ts'

/** A small framed label. `kind` is one of the colours in tokens.css. */
export const chip = (label: Children, kind = 'plain', title?: string): View =>
  html`<span
    class=${`chip chip-${kind}`}
    style=${kind === 'plain' ? {} : colours('chip', kind)}
    title=${title}
    >${label}</span
  >`

type Style = Record<`--${string}`, string>

/** Sets the custom properties of a part to a colour in tokens.css. */
const colours = (part: 'chip' | 'speaker', name: string): Style => ({
  [`--${part}`]: `var(--${name})`,
  [`--${part}-soft`]: `var(--${name}-soft)`,
})

/** Words with the colour, or the sentence, that goes with them. */
export type Labels<Name extends string> = Record<Name, [label: string, colour: string]>

const tiers = words.tiers as Record<Tier, [label: string, colour: string, title: string]>
const windows = words.windows as Labels<keyof typeof words.windows>

export const tierName = (tier: Tier): string => tiers[tier][0]
export const tierChip = (tier: Tier): View => chip(...tiers[tier])

export const windowChip = (name: keyof typeof windows): View =>
  chip(windows[name][0], 'plain', windows[name][1])

export const importanceChip = (importance: number | null | undefined): View | null =>
  importance ? chip(`Importance ${importance}`, 'plain', 'From 1 to 10') : null

/** How sure the service is of a fact; only what it is not sure of wears a colour. */
export const sureChip = (confidence: number): View =>
  chip(
    `${formatPercent(confidence)} sure`,
    confidence < 0.4 ? 'bad' : confidence < 0.7 ? 'busy' : 'plain',
  )

export const tagChips = (tags: readonly string[]): View =>
  tags.length === 0
    ? chip('no tags', 'plain', 'Every member sees it')
    : html`<span class="chips">${tags.map(tag => chip(tag, 'data'))}</span>`

/** The fields that a memory was stored with. */
export const metadataChips = (metadata: Metadata | undefined): View[] =>
  Object.entries(metadata ?? {}).map(([name, value]) =>
    chip(`${name}: ${value}`, 'data', 'Metadata'),
  )

const states: Partial<Record<string, string[]>> = words.states

/** The state of a job or of an operation, in plain words. */
export const stateChip = (state: string): View => {
  const [label = state, colour] = states[state] ?? []
  return chip(label, colour)
}

type Speaker = { role: string; name?: string | undefined; tier?: number }

/** Red, yellow, green, blue, violet, pink, as angles of oklch. */
const hues = [20, 70, 130, 240, 285, 340]

/** The colours of a speaker: roles have their own, each name keeps one of six. */
export function speakerColours({ role, name, tier = 1 }: Speaker): Style {
  if (tier > 1) return colours('speaker', tier === 2 ? 'reflection' : 'high')
  if (name === undefined) return colours('speaker', role === 'user' ? 'user' : 'assistant')
  let sum = 0
  for (const character of name) sum = (sum * 31 + character.codePointAt(0)!) % 9_973
  const hue = hues[sum % hues.length]
  return {
    '--speaker': `light-dark(oklch(0.45 0.1 ${hue}), oklch(0.83 0.09 ${hue}))`,
    '--speaker-soft': `light-dark(oklch(0.94 0.03 ${hue}), oklch(0.32 0.05 ${hue}))`,
  }
}

/** A disc with the first letter of a speaker. */
export const avatar = (speaker: Speaker): View =>
  html`<span class="avatar" style=${speakerColours(speaker)} aria-hidden="true">
    ${firstLetter(speaker.name ?? speaker.role)}
  </span>`

const firstLetter = (name: string): string =>
  String.fromCodePoint(name.trim().codePointAt(0) ?? 0x3f).toLocaleUpperCase('en')

/** Who said something, what, and a note below it. */
export const speakerRow = (speaker: Speaker, main: Children, note: Children): View =>
  html`<article class="latest-row">
    ${avatar(speaker)}
    <div class="row-main stack-close">
      ${main}
      <div class="quiet chips">${note}</div>
    </div>
  </article>`

/** How long ago something was; a pointer shows the time itself. */
export const agoView = (moment: DateLike): View =>
  timeView(moment, formatRelativeTime(moment), formatDateTime(moment))

/** The time of day, with the day where it is not today. */
export const clockView = (moment: DateLike): View => {
  const isToday = formatShortDay(moment) === formatShortDay(Date.now())
  return timeView(
    moment,
    isToday ? formatTime(moment) : formatDayTime(moment),
    formatDateTime(moment),
  )
}

/** A time for people and for programs. */
export const timeView = (moment: DateLike, words = formatDateTime(moment), title?: string): View =>
  html`<time datetime=${toIsoString(moment)} title=${title}>${words}</time>`
