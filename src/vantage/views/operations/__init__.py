"""Operations on whole batches of images, with parameters for each image."""
