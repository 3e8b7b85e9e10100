import { html, type Children, type View } from '#api/console/app/html.ts'
import type { Metadata } from '#api/contract/generated/types.ts'

/** A small framed label. `kind` is one of the colours in parts.css. */
export const chip = (label: Children, kind = 'plain', title?: string): View =>
  html`<span class=${`chip chip-${kind}`} title=${title}>${label}</span>`

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

export const tagChips = (tags: readonly string[]): View =>
  tags.length === 0
    ? chip('no tags', 'plain', 'Every member sees it')
    : html`<span class="chips">${tags.map(tag => chip(tag, 'tag'))}</span>`

/** The fields that a memory was stored with. */
export const metadataChips = (metadata: Metadata | undefined): View[] =>
  Object.entries(metadata ?? {}).map(([name, value]) =>
    chip(`${name}: ${value}`, 'tag', 'Metadata'),
  )

const stateColors: Record<string, string> = {
  done: 'good',
  failed: 'bad',
  running: 'busy',
  accepted: 'busy',
}

export const stateChip = (state: string): View => chip(state, stateColors[state] ?? 'plain')
