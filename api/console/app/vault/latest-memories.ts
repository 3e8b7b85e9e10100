import { formatDateTime, formatRelativeTime, toIsoString } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { tierChip } from '#api/console/app/parts/chips.ts'
import { avatar } from '#api/console/app/parts/speaker.ts'
import type { ListedMemory } from '#api/contract/generated/types.ts'

/** Memories, shortened. */
export const latestList = (items: readonly ListedMemory[]): View =>
  html`<ul class="plain latest">
    ${items.map(memory => html`<li key=${memory.memory_id}>${latestRow(memory)}</li>`)}
  </ul>`

const latestRow = ({ text, date, role, name, tier }: ListedMemory): View =>
  html`<article class="latest-row">
    ${avatar({ role, name, tier })}
    <div class="row-main">
      <p class="latest-text">${text}</p>
      <p class="quiet chips">
        ${tier === 1 && html`<span>${name ?? role}</span>`}
        <time datetime=${toIsoString(date)} title=${formatDateTime(date)}>
          ${formatRelativeTime(date)}
        </time>
        ${tier > 1 && tierChip(tier)}
      </p>
    </div>
  </article>`
