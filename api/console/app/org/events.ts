import { renderComponent, type View } from '#api/console/app/html.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { AccountEvents } from '#api/console/app/vault/account-events.ts'

/** Who changed access and policy: roles, tags, instructions, settings, members, reviewers and keys. */
export const Events = (): View =>
  page({
    title: 'Events',
    description:
      'Who changed roles, tags, instructions, settings, members and keys, in all organizations of the account.',
    children: renderComponent(AccountEvents, {}),
  })
