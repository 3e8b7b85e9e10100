import icons from '#api/console/app/parts/icons.json' with { type: 'json' }
import { html, type View } from '#api/console/app/html.ts'

/** Outlines on a square of 24 units, by what they stand for: pages by the last segment of their route. */
const outlines: Record<string, string> = icons

/** An outline in the colour of the text, hidden from screen readers; null for an unknown name. */
export const icon = (name: string): View | null =>
  outlines[name] === undefined
    ? null
    : html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
        <g fill="none" stroke="currentColor" stroke-linecap="round" stroke-linejoin="round">
          <path stroke-width="1.75" d=${outlines[name]} />
        </g>
      </svg>`

/** The mark of the product: the door of a vault. */
export const mark = (): View =>
  html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <rect x="1" y="1" width="22" height="22" rx="6" fill="var(--accent)" />
    <g fill="none" stroke="var(--accent-ink)" stroke-width="2">
      <circle cx="12" cy="12" r="6" />
      <path d="M12 3.5v4M12 16.5v4M3.5 12h4M16.5 12h4" />
    </g>
    <circle cx="12" cy="12" r="2" fill="var(--accent-ink)" />
  </svg>`
