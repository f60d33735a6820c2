"""Tables and label columns of any form -> examples with targets."""
