import type { Config } from '#shared/config.ts'
import type { Admin } from '#shared/key/admin.ts'

/** Whose admin credentials open what belongs to the service as a whole: `ADMIN_EMAIL`, if it is set. */
export const operatorEmail = ({ adminEmail }: Pick<Config, 'adminEmail'>): string =>
  adminEmail ?? 'owner@localhost'

/** Other admins own organizations; queues and metrics tell of every tenant. */
export const isOperator = (config: Pick<Config, 'adminEmail'>, { email }: Admin): boolean =>
  email === operatorEmail(config)
