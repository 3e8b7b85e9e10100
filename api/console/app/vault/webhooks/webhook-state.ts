import { formatRelativeTime } from '#api/console/app/format.ts'
import type { View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import type { Webhook } from '#api/contract/generated/types.ts'

const offReasons = {
  owner: 'switched off',
  failures: 'off: it kept failing',
  gone: 'off: it answered 410',
}

/** Whether a webhook is sent to, and how that goes. */
export function stateOf({ active, disabled_reason, failing_since }: Webhook): View {
  if (!active) return chip(offReasons[disabled_reason ?? 'owner'], 'bad')
  return failing_since === null
    ? chip('on', 'good')
    : chip(`failing since ${formatRelativeTime(failing_since)}`, 'busy')
}
