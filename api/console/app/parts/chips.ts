import {
  formatDateTime,
  formatPercent,
  toIsoString,
  type DateLike,
} from '#api/console/app/format.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'
import type { Metadata } from '#api/contract/generated/types.ts'

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

const tiers = {
  1: ['Raw', 'raw', 'Tier 1: what was said, word for word'],
  2: ['Reflection', 'reflection', 'Tier 2: what happened'],
  3: ['High-level', 'high', 'Tier 3: what it means'],
} as const

export type Tier = keyof typeof tiers

export const tierName = (tier: Tier): string => tiers[tier][0]
export const tierChip = (tier: Tier): View =>
  chip(...(tiers[tier] as readonly [string, string, string]))

const windows = {
  hot: ['Hot', 'Under 4 hours old'],
  working: ['Working', 'Under 3 days old'],
  longterm: ['Long-term', 'More than 3 days old'],
} as const

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

const stateColours: Record<string, string> = {
  done: 'good',
  failed: 'bad',
  running: 'busy',
  accepted: 'busy',
  retrying: 'busy',
  dead: 'bad',
}

export const stateChip = (state: string): View => chip(state, stateColours[state] ?? 'plain')

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

/** A time for people and for programs. */
export const timeView = (moment: DateLike, words = formatDateTime(moment), title?: string): View =>
  html`<time datetime=${toIsoString(moment)} title=${title}>${words}</time>`
